// What a program in Go does through go-ora, checked by itself: name<TAB>ok or name<TAB>what went wrong.
package main

import (
	"database/sql"
	"fmt"
	go_ora "github.com/sijms/go-ora/v2"
	"os"
	"strings"
	"time"
)

func step(n string, f func() (interface{}, error)) {
	defer func() {
		if r := recover(); r != nil {
			fmt.Printf("%s\tpanic %v\n", n, r)
		}
	}()
	v, err := f()
	if err != nil {
		fmt.Printf("%s\t%v\n", n, err)
	} else {
		fmt.Printf("%s\tok\n", n)
		_ = v
	}
}
func main() {
	var port int
	fmt.Sscan(os.Args[1], &port)
	url := go_ora.BuildUrl("127.0.0.1", port, "ORCLPDB1", os.Args[2], os.Args[3], map[string]string{"TIMEOUT": "20"})
	db, err := sql.Open("oracle", url)
	if err != nil {
		fmt.Println(err)
		os.Exit(1)
	}
	step("ping", func() (interface{}, error) { return "", db.Ping() })
	step("ddl", func() (interface{}, error) {
		_, e := db.Exec("create table visit (id number(10) primary key, name varchar2(200), val number(10,2), visit_date date, ts timestamp(6), c clob, b blob, r raw(20), f binary_double)")
		return "", e
	})
	step("insert", func() (interface{}, error) {
		r, e := db.Exec("insert into visit (id,name,val,visit_date) values (:1,:2,:3,:4)", 1, "naïve", 12.5, time.Date(2024, 1, 2, 3, 4, 5, 0, time.UTC))
		if e != nil {
			return nil, e
		}
		n, _ := r.RowsAffected()
		return n, nil
	})
	step("query", func() (interface{}, error) {
		var id int
		var n string
		var v float64
		var d time.Time
		e := db.QueryRow("select id,name,val,visit_date from visit where id=:1", 1).Scan(&id, &n, &v, &d)
		if e == nil && (id != 1 || n != "naïve" || v != 12.5 || !d.Equal(time.Date(2024, 1, 2, 3, 4, 5, 0, time.UTC))) {
			e = fmt.Errorf("%v %v %v %v", id, n, v, d)
		}
		return n, e
	})
	step("many", func() (interface{}, error) {
		tx, e := db.Begin()
		if e != nil {
			return nil, e
		}
		st, e := tx.Prepare("insert into visit (id,name) values (:1,:2)")
		if e != nil {
			return nil, e
		}
		for i := 2; i < 100; i++ {
			if _, e = st.Exec(i, fmt.Sprint("n", i)); e != nil {
				return nil, e
			}
		}
		st.Close()
		return "", tx.Commit()
	})
	step("rows", func() (interface{}, error) {
		rows, e := db.Query("select id,name from visit order by id")
		if e != nil {
			return nil, e
		}
		n := 0
		for rows.Next() {
			var i int
			var s sql.NullString
			if e = rows.Scan(&i, &s); e != nil {
				return nil, e
			}
			n += i
		}
		if n != 4950 {
			return nil, fmt.Errorf("%d", n)
		}
		return n, rows.Err()
	})
	step("rollback", func() (interface{}, error) {
		tx, _ := db.Begin()
		tx.Exec("delete from visit")
		tx.Rollback()
		var n int
		e := db.QueryRow("select count(*) from visit").Scan(&n)
		if e == nil && n != 99 {
			e = fmt.Errorf("%d", n)
		}
		return n, e
	})
	step("error", func() (interface{}, error) {
		_, e := db.Exec("insert into visit (id) values (1)")
		if e == nil {
			return nil, fmt.Errorf("no error")
		}
		if !strings.Contains(e.Error(), "ORA-00001") {
			return nil, e
		}
		return "", nil
	})
	step("lobs", func() (interface{}, error) {
		b := make([]byte, 100000)
		for i := range b {
			b[i] = byte(i)
		}
		s := ""
		for i := 0; i < 2000; i++ {
			s += "élan"
		}
		if _, e := db.Exec("update visit set c=:1,b=:2,r=:3,f=:4 where id=1", go_ora.Clob{String: s, Valid: true}, go_ora.Blob{Data: b}, []byte{1, 2, 3}, 1.5); e != nil {
			return nil, e
		}
		var c string
		var bb []byte
		var f float64
		if e := db.QueryRow("select c,b,f from visit where id=1").Scan(&c, &bb, &f); e != nil {
			return nil, e
		}
		if c != s || string(bb) != string(b) {
			return nil, fmt.Errorf("lobs differ %d %d", len(c), len(bb))
		}
		return len(bb), nil
	})
	step("plsql out", func() (interface{}, error) {
		var o int64
		var s string
		_, e := db.Exec("begin :1 := :2 * 2; :3 := 'x' || :2; end;", go_ora.Out{Dest: &o}, 21, go_ora.Out{Dest: &s, Size: 100})
		if e == nil && (o != 42 || s != "x21") {
			e = fmt.Errorf("%d %s", o, s)
		}
		return s, e
	})
	step("returning", func() (interface{}, error) {
		var id int64
		_, e := db.Exec("insert into visit (id,name) values (500,'r') returning id into :1", go_ora.Out{Dest: &id})
		if e == nil && id != 500 {
			e = fmt.Errorf("%d", id)
		}
		return id, e
	})
	step("ref cursor", func() (interface{}, error) {
		if _, e := db.Exec("create or replace procedure rc(c out sys_refcursor) as begin open c for select id,name from visit where id<4 order by id; end;"); e != nil {
			return nil, e
		}
		var cur go_ora.RefCursor
		if _, e := db.Exec("begin rc(:1); end;", sql.Out{Dest: &cur}); e != nil {
			return nil, e
		}
		defer cur.Close()
		rows, e := cur.Query()
		if e != nil {
			return nil, e
		}
		n := 0
		for rows.Next_() {
			var i int64
			var s string
			if e = rows.Scan(&i, &s); e != nil {
				return nil, e
			}
			n++
		}
		if n != 3 {
			return nil, fmt.Errorf("%d", n)
		}
		return n, nil
	})
	step("bulk", func() (interface{}, error) {
		ids := []int{1000, 1001, 1002}
		ns := []string{"a", "b", "c"}
		r, e := db.Exec("insert into visit (id,name) values (:1,:2)", ids, ns)
		if e != nil {
			return nil, e
		}
		n, _ := r.RowsAffected()
		return n, nil
	})
	step("timestamps", func() (interface{}, error) {
		t := time.Date(2024, 5, 6, 7, 8, 9, 123456000, time.UTC)
		if _, e := db.Exec("update visit set ts=:1 where id=1", go_ora.TimeStamp(t)); e != nil {
			return nil, e
		}
		var x time.Time
		e := db.QueryRow("select ts from visit where id=1").Scan(&x)
		if e == nil && !x.Equal(t) {
			e = fmt.Errorf("%v", x)
		}
		return x, e
	})
	step("numbers", func() (interface{}, error) {
		var a string
		e := db.QueryRow("select 12345678901234567890123456789.125 from dual").Scan(&a)
		if e == nil && a != "12345678901234567890123456789.125" {
			e = fmt.Errorf("%s", a)
		}
		return a, e
	})
	step("nulls", func() (interface{}, error) {
		var a sql.NullString
		var n sql.NullFloat64
		e := db.QueryRow("select null, cast(null as number) from dual").Scan(&a, &n)
		return fmt.Sprint(a.Valid, n.Valid), e
	})
	step("named", func() (interface{}, error) {
		var n int
		e := db.QueryRow("select count(*) from visit where id between :lo and :hi", sql.Named("lo", 1), sql.Named("hi", 5)).Scan(&n)
		if e == nil && n != 5 {
			e = fmt.Errorf("%d", n)
		}
		return n, e
	})
	step("wrong password", func() (interface{}, error) {
		d, _ := sql.Open("oracle", go_ora.BuildUrl("127.0.0.1", port, "ORCLPDB1", os.Args[2], "no", nil))
		e := d.Ping()
		if e == nil {
			return nil, fmt.Errorf("no error")
		}
		if !strings.Contains(e.Error(), "ORA-01017") {
			return nil, e
		}
		return "", nil
	})
	step("close", func() (interface{}, error) { return "", db.Close() })
}
