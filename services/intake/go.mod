module muster.dev/muster/services/intake

go 1.26.0

require muster.dev/muster/pkg v0.0.0

require (
	github.com/prometheus/client_golang v1.24.1 // indirect
	go.uber.org/multierr v1.11.0 // indirect
	go.uber.org/zap v1.28.0 // indirect
)

replace muster.dev/muster/pkg => ../../pkg
