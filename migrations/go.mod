module muster.dev/muster/migrations

go 1.26.0
