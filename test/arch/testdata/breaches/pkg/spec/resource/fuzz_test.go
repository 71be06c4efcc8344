package resource

import "testing"

func FuzzList(*testing.F) {}
