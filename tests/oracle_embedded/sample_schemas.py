"""Oracle's sample schemas HR, CO and SH, rebuilt by hand from their documentation: names, types and rules are theirs, rows are our own.

Each is a sequence of statements for one schema. What the embedded Oracle refuses of them is left out, and named in REFUSED.
"""

from __future__ import annotations

HR = (
    "CREATE TABLE regions (region_id NUMBER CONSTRAINT region_id_nn NOT NULL, region_name VARCHAR2(25))",
    "CREATE UNIQUE INDEX reg_id_pk ON regions (region_id)",
    "ALTER TABLE regions ADD (CONSTRAINT reg_id_pk PRIMARY KEY (region_id))",
    "CREATE TABLE countries (country_id CHAR(2) CONSTRAINT country_id_nn NOT NULL, country_name VARCHAR2(60), region_id NUMBER,"
    " CONSTRAINT country_c_id_pk PRIMARY KEY (country_id)) ORGANIZATION INDEX",
    "ALTER TABLE countries ADD (CONSTRAINT countr_reg_fk FOREIGN KEY (region_id) REFERENCES regions (region_id))",
    "CREATE TABLE locations (location_id NUMBER(4), street_address VARCHAR2(40), postal_code VARCHAR2(12),"
    " city VARCHAR2(30) CONSTRAINT loc_city_nn NOT NULL, state_province VARCHAR2(25), country_id CHAR(2))",
    "CREATE UNIQUE INDEX loc_id_pk ON locations (location_id)",
    "ALTER TABLE locations ADD (CONSTRAINT loc_id_pk PRIMARY KEY (location_id),"
    " CONSTRAINT loc_c_id_fk FOREIGN KEY (country_id) REFERENCES countries (country_id))",
    "CREATE SEQUENCE locations_seq START WITH 3300 INCREMENT BY 100 MAXVALUE 9900 NOCACHE NOCYCLE",
    "CREATE TABLE departments (department_id NUMBER(4), department_name VARCHAR2(30) CONSTRAINT dept_name_nn NOT NULL,"
    " manager_id NUMBER(6), location_id NUMBER(4))",
    "CREATE UNIQUE INDEX dept_id_pk ON departments (department_id)",
    "ALTER TABLE departments ADD (CONSTRAINT dept_id_pk PRIMARY KEY (department_id),"
    " CONSTRAINT dept_loc_fk FOREIGN KEY (location_id) REFERENCES locations (location_id))",
    "CREATE SEQUENCE departments_seq START WITH 280 INCREMENT BY 10 MAXVALUE 9990 NOCACHE NOCYCLE",
    "CREATE TABLE jobs (job_id VARCHAR2(10), job_title VARCHAR2(35) CONSTRAINT job_title_nn NOT NULL, min_salary NUMBER(6),"
    " max_salary NUMBER(6))",
    "ALTER TABLE jobs ADD (CONSTRAINT job_id_pk PRIMARY KEY (job_id))",
    "CREATE TABLE employees (employee_id NUMBER(6), first_name VARCHAR2(20), last_name VARCHAR2(25) CONSTRAINT emp_last_name_nn NOT NULL,"
    " email VARCHAR2(25) CONSTRAINT emp_email_nn NOT NULL, phone_number VARCHAR2(20), hire_date DATE CONSTRAINT emp_hire_date_nn NOT NULL,"
    " job_id VARCHAR2(10) CONSTRAINT emp_job_nn NOT NULL, salary NUMBER(8,2), commission_pct NUMBER(2,2), manager_id NUMBER(6),"
    " department_id NUMBER(4), CONSTRAINT emp_salary_min CHECK (salary > 0), CONSTRAINT emp_email_uk UNIQUE (email))",
    "CREATE UNIQUE INDEX emp_emp_id_pk ON employees (employee_id)",
    "ALTER TABLE employees ADD (CONSTRAINT emp_emp_id_pk PRIMARY KEY (employee_id),"
    " CONSTRAINT emp_dept_fk FOREIGN KEY (department_id) REFERENCES departments,"
    " CONSTRAINT emp_job_fk FOREIGN KEY (job_id) REFERENCES jobs (job_id),"
    " CONSTRAINT emp_manager_fk FOREIGN KEY (manager_id) REFERENCES employees)",
    "ALTER TABLE departments ADD (CONSTRAINT dept_mgr_fk FOREIGN KEY (manager_id) REFERENCES employees (employee_id))",
    "CREATE SEQUENCE employees_seq START WITH 207 INCREMENT BY 1 NOCACHE NOCYCLE",
    "CREATE TABLE job_history (employee_id NUMBER(6) CONSTRAINT jhist_employee_nn NOT NULL,"
    " start_date DATE CONSTRAINT jhist_start_date_nn NOT NULL, end_date DATE CONSTRAINT jhist_end_date_nn NOT NULL,"
    " job_id VARCHAR2(10) CONSTRAINT jhist_job_nn NOT NULL, department_id NUMBER(4),"
    " CONSTRAINT jhist_date_interval CHECK (end_date > start_date))",
    "CREATE UNIQUE INDEX jhist_emp_id_st_date_pk ON job_history (employee_id, start_date)",
    "ALTER TABLE job_history ADD (CONSTRAINT jhist_emp_id_st_date_pk PRIMARY KEY (employee_id, start_date),"
    " CONSTRAINT jhist_job_fk FOREIGN KEY (job_id) REFERENCES jobs, CONSTRAINT jhist_emp_fk FOREIGN KEY (employee_id)"
    " REFERENCES employees, CONSTRAINT jhist_dept_fk FOREIGN KEY (department_id) REFERENCES departments)",
    "CREATE OR REPLACE VIEW emp_details_view (employee_id, job_id, manager_id, department_id, location_id, country_id, first_name,"
    " last_name, salary, commission_pct, department_name, job_title, city, state_province, country_name, region_name) AS"
    " SELECT e.employee_id, e.job_id, e.manager_id, e.department_id, d.location_id, l.country_id, e.first_name, e.last_name, e.salary,"
    " e.commission_pct, d.department_name, j.job_title, l.city, l.state_province, c.country_name, r.region_name FROM employees e,"
    " departments d, jobs j, locations l, countries c, regions r WHERE e.department_id = d.department_id AND d.location_id = l.location_id"
    " AND l.country_id = c.country_id AND c.region_id = r.region_id AND j.job_id = e.job_id WITH READ ONLY",
    "INSERT INTO regions VALUES (10, 'Europe')",
    "INSERT INTO countries VALUES ('CH', 'Switzerland', 10)",
    "INSERT INTO locations VALUES (1000, 'Seestrasse 1', '8000', 'Zürich', NULL, 'CH')",
    "ALTER TABLE departments DISABLE CONSTRAINT dept_mgr_fk",
    "INSERT INTO departments VALUES (10, 'Administration', 200, 1000)",
    "INSERT INTO departments VALUES (20, 'Research', NULL, 1000)",
    "INSERT INTO jobs VALUES ('AD_ASST', 'Assistant', 3000, 6000)",
    "INSERT INTO jobs VALUES ('RE_LEAD', 'Lead', 6000, 20000)",
    "INSERT INTO employees VALUES (200, 'Ada', 'Keller', 'AKELLER', '1.23', DATE '2013-09-17', 'AD_ASST', 4400, NULL, NULL, 10)",
    "INSERT INTO employees VALUES (201, 'Bo', 'Lund', 'BLUND', NULL, DATE '2014-02-17', 'RE_LEAD', 13000, .25, 200, 20)",
    "ALTER TABLE departments ENABLE CONSTRAINT dept_mgr_fk",
    "INSERT INTO job_history VALUES (200, DATE '2010-01-13', DATE '2012-07-24', 'AD_ASST', 10)",
    "COMMIT",
    "CREATE INDEX emp_department_ix ON employees (department_id)",
    "CREATE INDEX emp_name_ix ON employees (last_name, first_name)",
    "CREATE INDEX loc_city_ix ON locations (city)",
    "CREATE OR REPLACE PROCEDURE secure_dml IS BEGIN IF TO_CHAR(SYSDATE, 'YYYY') = '1999' THEN"
    " RAISE_APPLICATION_ERROR(-20205, 'You may only make changes during normal office hours'); END IF; END secure_dml;",
    "CREATE OR REPLACE TRIGGER secure_employees BEFORE INSERT OR UPDATE OR DELETE ON employees BEGIN secure_dml; END secure_employees;",
    "ALTER TRIGGER secure_employees DISABLE",
    "CREATE OR REPLACE PROCEDURE add_job_history (p_emp_id job_history.employee_id%TYPE, p_start_date job_history.start_date%TYPE,"
    " p_end_date job_history.end_date%TYPE, p_job_id job_history.job_id%TYPE, p_department_id job_history.department_id%TYPE) IS"
    " BEGIN INSERT INTO job_history (employee_id, start_date, end_date, job_id, department_id)"
    " VALUES (p_emp_id, p_start_date, p_end_date, p_job_id, p_department_id); END add_job_history;",
    "CREATE OR REPLACE TRIGGER update_job_history AFTER UPDATE OF job_id, department_id ON employees FOR EACH ROW BEGIN"
    " add_job_history(:old.employee_id, :old.hire_date, sysdate, :old.job_id, :old.department_id); END;",
    "COMMENT ON TABLE employees IS 'People who work here'",
    "COMMENT ON COLUMN employees.salary IS 'Per month, greater than zero'",
)
HR_TABLES = ("REGIONS", "COUNTRIES", "LOCATIONS", "DEPARTMENTS", "JOBS", "EMPLOYEES", "JOB_HISTORY")

CO = (
    "CREATE TABLE customers (customer_id INTEGER GENERATED BY DEFAULT ON NULL AS IDENTITY,"
    " email_address VARCHAR2(255 CHAR) NOT NULL, full_name VARCHAR2(255 CHAR) NOT NULL)",
    "CREATE TABLE stores (store_id INTEGER GENERATED BY DEFAULT ON NULL AS IDENTITY, store_name VARCHAR2(255 CHAR) NOT NULL,"
    " web_address VARCHAR2(100 CHAR), physical_address VARCHAR2(512 CHAR), latitude NUMBER(9,6), longitude NUMBER(9,6), logo BLOB,"
    " logo_mime_type VARCHAR2(512 CHAR), logo_last_updated DATE)",
    "CREATE TABLE products (product_id INTEGER GENERATED BY DEFAULT ON NULL AS IDENTITY, product_name VARCHAR2(255 CHAR) NOT NULL,"
    " unit_price NUMBER(10,2), product_details BLOB, product_image BLOB)",
    "CREATE TABLE orders (order_id INTEGER GENERATED BY DEFAULT ON NULL AS IDENTITY, order_tms TIMESTAMP NOT NULL,"
    " customer_id INTEGER NOT NULL, order_status VARCHAR2(10 CHAR) NOT NULL, store_id INTEGER NOT NULL)",
    "CREATE TABLE order_items (order_id INTEGER NOT NULL, line_item_id INTEGER NOT NULL, product_id INTEGER NOT NULL,"
    " unit_price NUMBER(10,2) NOT NULL, quantity INTEGER NOT NULL)",
    "ALTER TABLE customers ADD CONSTRAINT customers_pk PRIMARY KEY (customer_id)",
    "ALTER TABLE customers ADD CONSTRAINT customers_email_u UNIQUE (email_address)",
    "ALTER TABLE stores ADD CONSTRAINT stores_pk PRIMARY KEY (store_id)",
    "ALTER TABLE stores ADD CONSTRAINT store_name_u UNIQUE (store_name)",
    "ALTER TABLE stores ADD CONSTRAINT store_at_least_one_address_c CHECK (web_address IS NOT NULL OR physical_address IS NOT NULL)",
    "ALTER TABLE products ADD CONSTRAINT products_pk PRIMARY KEY (product_id)",
    "ALTER TABLE products ADD CONSTRAINT products_json_c CHECK (product_details IS JSON)",
    "ALTER TABLE orders ADD CONSTRAINT orders_pk PRIMARY KEY (order_id)",
    "ALTER TABLE orders ADD CONSTRAINT orders_customer_id_fk FOREIGN KEY (customer_id) REFERENCES customers (customer_id)",
    "ALTER TABLE orders ADD CONSTRAINT orders_status_c CHECK (order_status IN ('CANCELLED','COMPLETE','OPEN','PAID','REFUNDED','SHIPPED'))",
    "ALTER TABLE orders ADD CONSTRAINT orders_store_id_fk FOREIGN KEY (store_id) REFERENCES stores (store_id)",
    "ALTER TABLE order_items ADD CONSTRAINT order_items_pk PRIMARY KEY (order_id, line_item_id)",
    "ALTER TABLE order_items ADD CONSTRAINT order_items_product_u UNIQUE (product_id, order_id)",
    "ALTER TABLE order_items ADD CONSTRAINT order_items_order_id_fk FOREIGN KEY (order_id) REFERENCES orders (order_id)",
    "ALTER TABLE order_items ADD CONSTRAINT order_items_product_id_fk FOREIGN KEY (product_id) REFERENCES products (product_id)",
    "CREATE INDEX orders_customer_id_i ON orders (customer_id)",
    "INSERT INTO customers (email_address, full_name) VALUES ('ada@example.org', 'Ada')",
    "INSERT INTO stores (store_name, web_address) VALUES ('Online', 'https://example.org')",
    "INSERT INTO products (product_name, unit_price, product_details) VALUES ('Shirt', 39.5, UTL_RAW.CAST_TO_RAW('"
    '{"colour":"red","gender":"All","sizes":["S","M"],"reviews":[{"rating":4,"review":"warm"},{"rating":2,"review":"small"}]}'
    "'))",
    "INSERT INTO orders (order_tms, customer_id, order_status, store_id) VALUES (TIMESTAMP '2024-02-29 12:00:00', 1, 'OPEN', 1)",
    "INSERT INTO order_items VALUES (1, 1, 1, 39.5, 2)",
    "COMMIT",
    "CREATE OR REPLACE VIEW customer_order_products AS SELECT o.order_id, o.order_tms, o.order_status, c.customer_id, c.email_address,"
    " c.full_name, SUM(oi.quantity * oi.unit_price) order_total, LISTAGG(p.product_name, ', ' ON OVERFLOW TRUNCATE '...' WITH COUNT)"
    " WITHIN GROUP (ORDER BY oi.line_item_id) items FROM orders o JOIN order_items oi ON o.order_id = oi.order_id JOIN customers c ON"
    " o.customer_id = c.customer_id JOIN products p ON oi.product_id = p.product_id GROUP BY o.order_id, o.order_tms, o.order_status,"
    " c.customer_id, c.email_address, c.full_name",
    "CREATE OR REPLACE VIEW store_orders AS SELECT CASE GROUPING_ID(s.store_name, o.order_status) WHEN 1 THEN 'STORE TOTAL'"
    " WHEN 2 THEN 'STATUS TOTAL' WHEN 3 THEN 'GRAND TOTAL' END total, s.store_name, o.order_status, COUNT(DISTINCT o.order_id) order_count,"
    " SUM(oi.quantity * oi.unit_price) total_sales FROM stores s JOIN orders o ON s.store_id = o.store_id JOIN order_items oi ON"
    " o.order_id = oi.order_id GROUP BY GROUPING SETS ((s.store_name, o.order_status), s.store_name, o.order_status, ())",
    "CREATE OR REPLACE VIEW product_reviews AS SELECT p.product_name, r.rating, ROUND(AVG(r.rating) OVER (PARTITION BY product_name), 2)"
    " avg_rating, r.review FROM products p, JSON_TABLE(p.product_details, '$' COLUMNS (NESTED PATH '$.reviews[*]' COLUMNS (rating INTEGER"
    " PATH '$.rating', review VARCHAR2(4000) PATH '$.review'))) r",
)

SH = (
    "CREATE TABLE times (time_id DATE NOT NULL, day_name VARCHAR2(9) NOT NULL, calendar_year NUMBER(4) NOT NULL,"
    " CONSTRAINT times_pk PRIMARY KEY (time_id)) PCTFREE 5",
    "CREATE TABLE channels (channel_id NUMBER NOT NULL, channel_desc VARCHAR2(20) NOT NULL, channel_class VARCHAR2(20) NOT NULL,"
    " CONSTRAINT channels_pk PRIMARY KEY (channel_id)) PCTFREE 5",
    "CREATE TABLE countries (country_id NUMBER NOT NULL, country_iso_code CHAR(2) NOT NULL, country_name VARCHAR2(40) NOT NULL,"
    " CONSTRAINT countries_pk PRIMARY KEY (country_id)) PCTFREE 5",
    "CREATE TABLE customers (cust_id NUMBER NOT NULL, cust_last_name VARCHAR2(40) NOT NULL, cust_gender CHAR(1) NOT NULL,"
    " country_id NUMBER NOT NULL, cust_valid VARCHAR2(1), CONSTRAINT customers_pk PRIMARY KEY (cust_id)) PCTFREE 5",
    "CREATE TABLE products (prod_id NUMBER(6) NOT NULL, prod_name VARCHAR2(50) NOT NULL, prod_list_price NUMBER(8,2) NOT NULL,"
    " prod_status VARCHAR2(20) NOT NULL, CONSTRAINT products_pk PRIMARY KEY (prod_id)) PCTFREE 5",
    "CREATE TABLE promotions (promo_id NUMBER(6) NOT NULL, promo_name VARCHAR2(30) NOT NULL, CONSTRAINT promo_pk PRIMARY KEY (promo_id))",
    "CREATE TABLE sales (prod_id NUMBER NOT NULL, cust_id NUMBER NOT NULL, time_id DATE NOT NULL, channel_id NUMBER NOT NULL,"
    " promo_id NUMBER NOT NULL, quantity_sold NUMBER(10,2) NOT NULL, amount_sold NUMBER(10,2) NOT NULL) PCTFREE 5 NOLOGGING"
    " PARTITION BY RANGE (time_id) (PARTITION sales_1995 VALUES LESS THAN (DATE '1996-01-01'), PARTITION sales_1996 VALUES LESS THAN"
    " (DATE '1997-01-01'), PARTITION sales_h1_1997 VALUES LESS THAN (DATE '1997-07-01'), PARTITION sales_rest VALUES LESS THAN (MAXVALUE))",
    "ALTER TABLE sales ADD (CONSTRAINT sales_product_fk FOREIGN KEY (prod_id) REFERENCES products RELY DISABLE NOVALIDATE,"
    " CONSTRAINT sales_customer_fk FOREIGN KEY (cust_id) REFERENCES customers RELY DISABLE NOVALIDATE)",
    "ALTER TABLE customers ADD CONSTRAINT customers_country_fk FOREIGN KEY (country_id) REFERENCES countries (country_id) ENABLE NOVALIDATE",
    "CREATE BITMAP INDEX sales_prod_bix ON sales (prod_id) LOCAL NOLOGGING COMPUTE STATISTICS",
    "CREATE BITMAP INDEX sales_time_bix ON sales (time_id) LOCAL NOLOGGING",
    "CREATE BITMAP INDEX customers_gender_bix ON customers (cust_gender) NOLOGGING COMPUTE STATISTICS",
    "INSERT INTO times SELECT DATE '1997-01-01' + LEVEL, 'Monday', 1997 FROM DUAL CONNECT BY LEVEL <= 3",
    "INSERT INTO channels VALUES (3, 'Direct', 'Direct')",
    "INSERT INTO countries VALUES (52770, 'IT', 'Italy')",
    "INSERT INTO customers VALUES (1, 'Rossi', 'F', 52770, 'I')",
    "INSERT INTO products VALUES (13, 'Camera', 899.99, 'STATUS')",
    "INSERT INTO promotions VALUES (999, 'NO PROMOTION')",
    "INSERT INTO sales SELECT 13, 1, time_id, 3, 999, 1, 100.5 FROM times",
    "INSERT INTO sales VALUES (13, 1, DATE '1995-05-05', 3, 999, 2, 50)",
    "COMMIT",
    "CREATE OR REPLACE VIEW profits AS SELECT s.channel_id, s.cust_id, s.prod_id, s.promo_id, s.time_id, s.amount_sold, s.quantity_sold"
    " FROM sales s",
    "CREATE MATERIALIZED VIEW cal_month_sales_mv PCTFREE 5 BUILD IMMEDIATE REFRESH FORCE ENABLE QUERY REWRITE AS"
    " SELECT t.calendar_year, SUM(s.amount_sold) AS dollars FROM sales s, times t WHERE s.time_id = t.time_id GROUP BY t.calendar_year",
    "COMMENT ON TABLE sales IS 'Facts, without a primary key'",
    "CREATE TABLE sales_transactions_ext (prod_id NUMBER) ORGANIZATION EXTERNAL (TYPE ORACLE_LOADER LOCATION ('sale1v3.dat'))",
)

REFUSED = {
    "CREATE DIMENSION products_dim LEVEL product IS (products.prod_id)": 3001,
}
"""Statements of SH that are refused, with their ORA codes: dimensions."""
