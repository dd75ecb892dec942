package program

// LastOutput keeps the end of what is written to it.
type LastOutput struct{ text []byte }

func (t *LastOutput) Write(p []byte) (int, error) {
	t.text = append(t.text, p...)
	if extra := len(t.text) - tailBytes; extra > 0 {
		t.text = append(t.text[:0], t.text[extra:]...)
	}
	return len(p), nil
}

func (t *LastOutput) String() string { return string(t.text) }

const tailBytes = 8 << 10
