// Package kube turns Kubernetes objects into Muster's values: pods into requests and
// constraints, nodes into capacity. It also has the labels of the objects that Muster
// creates (labels.go).
//
//	JSON tree --> Decode --> pod template --> PodTemplate, Requests --> workload.Template
//	              (each       node        --> Node                  --> capacity.Node
//	              quantity    LimitRange  --> Defaults              --> resource.List
//	              bounded)
//
// Decode is the only way from JSON to a type with quantities, because Kubernetes' parser of
// quantities may never return (decode.go, quantity.go). What an object may be called, and what
// its labels may be, is checked before anything is stored of it: names.go, podnames.go,
// metadata.go, mistaken_keys.go.
//
// It is pure. It is not for talking to an API server, nor for Ray's kinds (package ray).
package kube
