// Command muster links a service by way of what the command lines share.
package main

import _ "muster.dev/muster/services/internal/client"

func main() {}
