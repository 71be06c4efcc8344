module muster.dev/muster/deploy

go 1.26.0
