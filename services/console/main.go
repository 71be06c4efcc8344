// Command console shows Muster in a browser. It asks the HTTP API with the token of each caller
// and has no rights of its own.
package main

import (
	"os"

	"muster.dev/muster/pkg/service"
	"muster.dev/muster/services/console/app"
)

func main() {
	os.Exit(service.Main("console", &app.Config{}, app.Run))
}
