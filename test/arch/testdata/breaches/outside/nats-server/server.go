// Package server stands for the real one.
package server
