package store

import "testing"

func FuzzStore(*testing.F) {}
