package main

func Example() {
	main()
	// Output:
	// 3
	// 2
	// 1
	// Liftoff! <nil>
}
