// Package cli is the command line of devcluster.
package cli
