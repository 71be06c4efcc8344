// Command intake imports another service, a command line's package, and the tests.
package main

import (
	_ "muster.dev/muster/services/dispatcher/app"
	_ "muster.dev/muster/services/internal/client"
	_ "muster.dev/muster/test/sim"
)

func main() {}
