// Command muster-dev runs all of Muster in one process for a laptop, plays the
// demo, and installs what the services need into a cluster. It is not for production.
package main

import (
	"os"

	"muster.dev/muster/services/internal/client/program"
	"muster.dev/muster/services/muster-dev/internal/cli"
	"muster.dev/muster/services/muster-dev/internal/localstack"
)

func main() {
	localstack.Trial()
	os.Exit(program.Main(cli.Run))
}
