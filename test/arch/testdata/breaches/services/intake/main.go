// Command intake imports another service, an API client and the tests.
package main

import (
	_ "k8s.io/client-go"

	_ "muster.dev/muster/services/dispatcher/app"
	_ "muster.dev/muster/test/sim"
)

func main() {}
