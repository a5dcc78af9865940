// Structures, slices, strings, maps and interfaces as globals.
package main

import (
	"fmt"
	"os"
	"strings"
	"unsafe"
)

type Pos struct{ X, Y int32 }
type Order struct {
	Id    int64
	At    Pos
	Tags  []string
	Name  string
	Known map[string]Pos
	Shown fmt.Stringer
	Next  *Order
	Cells [4]Pos
	Wave  complex128
}

var Kept Order
var Table [16]int64
var Line = []Pos{{1, 2}}

func tell(name string, at unsafe.Pointer) { fmt.Printf("&%s %d\n", name, uintptr(at)) }

func main() {
	Kept.Known = map[string]Pos{"a": {1, 2}}
	tell("Kept.Id", unsafe.Pointer(&Kept.Id))
	tell("Kept.At.Y", unsafe.Pointer(&Kept.At.Y))
	tell("Kept.Tags", unsafe.Pointer(&Kept.Tags))
	tell("Kept.Name", unsafe.Pointer(&Kept.Name))
	tell("Kept.Known", unsafe.Pointer(&Kept.Known))
	tell("Kept.Next", unsafe.Pointer(&Kept.Next))
	tell("Kept.Cells[3].X", unsafe.Pointer(&Kept.Cells[3].X))
	tell("Kept.Wave", unsafe.Pointer(&Kept.Wave))
	tell("Table[5]", unsafe.Pointer(&Table[5]))
	tell("Line", unsafe.Pointer(&Line))
	maps, _ := os.ReadFile("/proc/self/maps")
	for _, line := range strings.Split(strings.TrimSpace(string(maps)), "\n") {
		fmt.Println("map " + line)
	}
}
