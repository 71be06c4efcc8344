package main

import "testing"

// A peer pays for what it writes, not for what nodes and elections write anyway.
func TestWhichWritesCount(t *testing.T) {
	for _, test := range []struct {
		line string
		want bool
	}{
		{`apiserver_request_total{code="201",resource="rayclusters",verb="POST"} 5`, true},
		{`apiserver_request_total{code="200",resource="workloads",subresource="status",verb="APPLY"} 5`, true},
		{`apiserver_request_total{code="200",resource="rayclusters",verb="LIST"} 5`, false},
		{`apiserver_request_total{code="200",resource="leases",verb="PUT"} 5`, false},
		{`apiserver_request_total{code="201",resource="subjectaccessreviews",verb="POST"} 5`, false},
	} {
		t.Run(test.line, func(t *testing.T) {
			if got := isWrite(test.line) && !ofMachine(test.line); got != test.want {
				t.Errorf("counted: %v, want %v", got, test.want)
			}
		})
	}
}
