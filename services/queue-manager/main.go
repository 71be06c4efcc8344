// Command queue-manager keeps queues, workloads, nodes and reservations in
// Postgres and admits gangs. `queue-manager migrate` brings the database's
// schema up to date and exits; `queue-manager unquarantine NAME...` takes workloads and
// nodes out of quarantine; `queue-manager shadow` repeats what another one decides. It does not talk to Kubernetes: capacity-watcher and dispatcher do.
package main

import (
	"context"
	"errors"
	"fmt"
	"os"
	"runtime/debug"
	"slices"
	"strings"

	"go.uber.org/zap"

	"muster.dev/muster/pkg/service"
	"muster.dev/muster/services/queue-manager/app"
)

func main() {
	if len(os.Args) > 1 && os.Args[1] == "migrate" {
		os.Args = append(os.Args[:1], os.Args[2:]...)
		os.Exit(service.Main("queue-manager", &app.Config{}, migrate))
	}
	if len(os.Args) > 1 && os.Args[1] == "shadow" {
		os.Args = append(os.Args[:1], os.Args[2:]...)
		os.Exit(service.Main("queue-manager", &app.ShadowConfig{}, app.RunShadow))
	}
	if len(os.Args) > 1 && os.Args[1] == "unquarantine" {
		os.Exit(unquarantine(os.Args[2:]))
	}
	if os.Getenv("GOMEMLIMIT") == "" {
		debug.SetMemoryLimit(memoryLimit)
	}
	os.Exit(service.Main("queue-manager", &app.Config{}, app.Run))
}

// unquarantine takes what the arguments before the first flag name out of quarantine.
func unquarantine(args []string) int {
	names := args
	if i := slices.IndexFunc(args, func(arg string) bool { return strings.HasPrefix(arg, "-") }); i >= 0 {
		names = args[:i]
	}
	os.Args = append(os.Args[:1:1], args[len(names):]...)
	return service.Main("queue-manager", &app.Config{}, func(ctx context.Context, config *app.Config, runtime *service.Runtime) error {
		if len(names) == 0 {
			return errors.New("name what to try again: the id of a workload, or CLUSTER/NODE")
		}
		released, err := app.Unquarantine(ctx, config.DatabaseURL, names)
		if len(released) > 0 {
			runtime.Logger.Info("released from quarantine", zap.Strings("released", released))
		}
		if err == nil && len(released) < len(names) {
			return fmt.Errorf("of %q only %q were in quarantine", names, released)
		}
		return err
	})
}

// memoryLimit is where the garbage collector works harder instead of letting the
// heap grow to twice the live data: a million waiting workloads are more than a
// gigabyte.
const memoryLimit = 1700 << 20

func migrate(ctx context.Context, config *app.Config, runtime *service.Runtime) error {
	return app.Migrate(ctx, config.DatabaseURL, runtime.Logger)
}
