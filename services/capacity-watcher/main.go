// Command capacity-watcher publishes over NATS the nodes of one Kubernetes cluster and
// the observed pods of each gang there. It changes nothing in the cluster and decides
// nothing.
package main

import (
	"os"

	"muster.dev/muster/pkg/service"
	"muster.dev/muster/services/capacity-watcher/app"
)

func main() {
	os.Exit(service.Main("capacity-watcher", &app.Config{}, app.Run))
}
