// Command intake imports another service and the tests.
package main

import (
	_ "muster.dev/muster/services/dispatcher/app"
	_ "muster.dev/muster/test/sim"
)

func main() {}
