// Command muster-dev composes the services' packages app, as it may, and links what they link.
package main

import _ "muster.dev/muster/services/dispatcher/app"

func main() {}
