// Command queue-manager keeps queues, workloads, nodes and reservations in
// Postgres and admits gangs. `queue-manager migrate` brings the database's
// schema up to date and exits.
package main

import (
	"context"
	"os"

	"muster.dev/muster/pkg/service"
	"muster.dev/muster/services/queue-manager/app"
)

func main() {
	if len(os.Args) > 1 && os.Args[1] == "migrate" {
		os.Args = append(os.Args[:1], os.Args[2:]...)
		os.Exit(service.Main("queue-manager", &app.Config{}, migrate))
	}
	os.Exit(service.Main("queue-manager", &app.Config{}, app.Run))
}

func migrate(ctx context.Context, config *app.Config, runtime *service.Runtime) error {
	return app.Migrate(ctx, config.DatabaseURL, runtime.Logger)
}
