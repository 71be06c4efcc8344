// Package client is what the command lines share, and links a service.
package client

import _ "muster.dev/muster/services/dispatcher/app"
