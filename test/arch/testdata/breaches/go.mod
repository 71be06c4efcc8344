module muster.dev/muster

go 1.26.0

require (
	github.com/jackc/pgx/v5 v5.0.0
	github.com/nats-io/nats.go v1.0.0
	github.com/nats-io/nats-server/v2 v2.0.0
	k8s.io/apimachinery v0.0.0
	k8s.io/client-go v0.0.0
)

replace (
	github.com/jackc/pgx/v5 => ./outside/pgx
	github.com/nats-io/nats.go => ./outside/nats
	github.com/nats-io/nats-server/v2 => ./outside/nats-server
	k8s.io/apimachinery => ./outside/apimachinery
	k8s.io/client-go => ./outside/client-go
)
