// Package relay has retired words in its comments, for TestRetiredCommentsBite.
package relay

// A volley of messages: retired everywhere.
func publish() {
	/* first line
	the second has a Volley */
	lane := 0 // a name is the compiler's matter, and `volley` is quoted
	_ = lane
}

// The lane has retired under one folder only. Volleys are another word.
var _ = publish

// It says: the word is ordinary English in a comment.
