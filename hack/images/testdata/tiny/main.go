// Command tiny is built where only the image around a program matters.
package main

func main() {}
