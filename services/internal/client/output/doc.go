// Package output shows answers to people and programs: tables, descriptions, JSON and YAML.
// It is pure; the time of printing is a value. It is not for asking for the answers.
//
//	answer --> Print, by Format --> json, yaml, name, jsonpath   the answer itself
//	  |        (print.go,       --> text, wide                   its Table
//	  |        jsonpath.go)                                      (table.go)
//	  +-----> DescribeWorkload, DescribeQueue, DescribeCluster, DescribeNode,
//	          Explain: text for people
//
// There is one file for each kind of answer. The console shows the same words (words.go). What
// a terminal would obey is quoted (quote.go).
package output
