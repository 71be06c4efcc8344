// Command capacity-watcher tells over NATS what the nodes of one Kubernetes
// cluster offer, and what is seen of the pods of each gang there.
package main

import (
	"os"

	"muster.dev/muster/pkg/service"
	"muster.dev/muster/services/capacity-watcher/app"
)

func main() {
	os.Exit(service.Main("capacity-watcher", &app.Config{}, app.Run))
}
