// Command intake reads submissions and turns them into workloads or rejections. It does not
// store them, nor decide when they start: queue-manager does.
package main

import (
	"os"

	"muster.dev/muster/pkg/service"
	"muster.dev/muster/services/intake/app"
)

func main() {
	app.Trial()
	os.Exit(service.Main("intake", &app.Config{}, app.Run))
}
