// Package appwrapper reads AppWrappers, MCAD's v1beta1 (also under its old group
// mcad.ibm.com) and v1beta2, into workloads of several objects, and words the
// life of a workload as their users know it.
//
//	AppWrapper --> Read --> Wrapper, with bundle and pod sets           appwrapper.go
//	                |
//	                +-- v1beta1.go, v1beta2.go   where the wrapped objects are
//	                +-- items.go, names.go       the objects, and what their names may be
//	                +-- pods.go                  the pods that they make
//	                +-- declared.go, amounts.go  what the user declares of them
//	                +-- scheduling.go            how long pods may take
//
//	View --> Status --> the status to write, if it differs              view.go
//	                |
//	                +-- words.go, conditionlog.go  v1beta1: state and log
//	                +-- phases.go                  v1beta2: phases and conditions
//
// It is not for the stored form of such workloads (package bundle) nor for
// talking to an API server. The package is pure.
package appwrapper
