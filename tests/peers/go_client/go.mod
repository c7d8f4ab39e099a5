module redolake.local/go_client

go 1.20

require github.com/sijms/go-ora/v2 v2.8.24
