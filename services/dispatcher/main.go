// Command dispatcher creates, watches and deletes the Ray objects of one
// cluster as queue-manager commands.
package main

import (
	"os"

	"muster.dev/muster/pkg/service"
	"muster.dev/muster/services/dispatcher/app"
)

func main() {
	os.Exit(service.Main("dispatcher", &app.Config{}, app.Run))
}
