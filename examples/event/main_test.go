package main

func Example() {
	main()
	// Output: a desk approved by Ada <nil>
}
