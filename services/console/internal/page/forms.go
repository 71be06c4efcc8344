package page

// Confirm is the form in which a caller confirms an action.
type Confirm struct {
	What, Label, Link, Back, Form, Problem string
	Inputs                                 []Input
}

// Input is a field of a form.
type Input struct {
	Name, Label, Value string
	Longest            int
	Number, Required   bool
}
