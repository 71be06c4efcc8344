// Package scenarios is the project's policy tests: scenario files, and the test
// that plays them and the examples of docs/scenarios.md.
package scenarios
