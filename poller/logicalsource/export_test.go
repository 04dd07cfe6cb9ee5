package logicalsource

// SetWindow makes a look at the slot end after this many messages.
func (s *Source) SetWindow(n int) { s.window = n }

// Parse reads a message.
func Parse(data []byte) error {
	_, err := parse(data)
	return err
}
