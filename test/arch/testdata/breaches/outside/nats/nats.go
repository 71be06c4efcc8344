// Package nats stands for the real one.
package nats
