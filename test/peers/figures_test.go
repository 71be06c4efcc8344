package main

import (
	"os"
	"testing"
	"time"
)

func TestQuantile(t *testing.T) {
	samples := []time.Duration{4, 1, 3, 2, 5}
	for _, test := range []struct {
		name    string
		samples []time.Duration
		q       float64
		want    time.Duration
	}{
		{"median", samples, 0.5, 3},
		{"the largest of a few is their p99", samples, 0.99, 5},
		{"none", nil, 0.5, 0},
	} {
		t.Run(test.name, func(t *testing.T) {
			if got := quantile(test.samples, test.q); got != test.want {
				t.Errorf("quantile(%v, %v) = %v, want %v", test.samples, test.q, got, test.want)
			}
		})
	}
}

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

func TestProcessTimeOfThisProcess(t *testing.T) {
	began := time.Now()
	for processTime(os.Getpid()) == 0 && time.Since(began) < time.Minute { // use processor time
		_ = quantile([]time.Duration{2, 1}, 0.5)
	}
	if got := processTime(os.Getpid()); got <= 0 || got > time.Hour {
		t.Errorf("processTime of this process = %v, want some", got)
	}
}
