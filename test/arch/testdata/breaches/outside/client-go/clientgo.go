// Package clientgo stands for the real one.
package clientgo
