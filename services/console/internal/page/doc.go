// Package page makes the console's pages: from answers of the HTTP API the model of each page,
// and from a model its HTML. It uses the words of the command line.
//
// It is pure: it asks nothing, and the time is a value. Package web asks and serves.
package page
