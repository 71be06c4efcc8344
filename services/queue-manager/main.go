// Command queue-manager keeps queues, workloads, nodes and reservations in
// Postgres and admits gangs. `queue-manager migrate` brings the database's
// schema up to date and exits.
package main

import (
	"context"
	"os"
	"runtime/debug"

	"muster.dev/muster/pkg/service"
	"muster.dev/muster/services/queue-manager/app"
)

func main() {
	if len(os.Args) > 1 && os.Args[1] == "migrate" {
		os.Args = append(os.Args[:1], os.Args[2:]...)
		os.Exit(service.Main("queue-manager", &app.Config{}, migrate))
	}
	if os.Getenv("GOMEMLIMIT") == "" {
		debug.SetMemoryLimit(memoryLimit)
	}
	os.Exit(service.Main("queue-manager", &app.Config{}, app.Run))
}

// memoryLimit is where the garbage collector works harder instead of letting the
// heap grow to twice the live data: a million waiting workloads are more than a
// gigabyte.
const memoryLimit = 1700 << 20

func migrate(ctx context.Context, config *app.Config, runtime *service.Runtime) error {
	return app.Migrate(ctx, config.DatabaseURL, runtime.Logger)
}
