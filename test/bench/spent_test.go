package main

import "testing"

func TestPodWritesOf(t *testing.T) {
	t.Parallel()
	got, err := podWritesOf(`# TYPE apiserver_request_total counter
apiserver_request_total{code="201",resource="pods",scope="resource",subresource="",verb="POST"} 512
apiserver_request_total{code="409",resource="pods",scope="resource",subresource="",verb="POST"} 1
apiserver_request_total{code="200",resource="pods",scope="resource",subresource="",verb="PATCH"} 500
apiserver_request_total{code="201",resource="pods",scope="resource",subresource="binding",verb="POST"} 510
apiserver_request_total{code="200",resource="pods",scope="resource",subresource="status",verb="PATCH"} 1e+03
apiserver_request_total{code="200",resource="pods",scope="resource",subresource="status",verb="PUT"} 2
apiserver_request_total{code="200",resource="nodes",scope="resource",subresource="status",verb="PATCH"} 9
apiserver_request_total{code="200",resource="pods",scope="cluster",subresource="",verb="LIST"} 7
`)
	if want := [4]float64{513, 500, 510, 1002}; err != nil || got != want {
		t.Errorf("podWritesOf = %v, %v; want %v", got, err, want)
	}
}
