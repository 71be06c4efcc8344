// Command dispatcher creates, watches and deletes the Ray objects of one cluster as
// queue-manager commands. It does not decide which workloads start, nor where.
package main

import (
	"os"

	"muster.dev/muster/pkg/service"
	"muster.dev/muster/services/dispatcher/app"
)

func main() {
	os.Exit(service.Main("dispatcher", &app.Config{}, app.Run))
}
