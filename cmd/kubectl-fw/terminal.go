package main

import (
	"bytes"
	"fmt"
	"io"
	"os"
	"slices"
	"strings"
	"unicode/utf8"

	"golang.org/x/term"
	"k8s.io/cli-runtime/pkg/printers"
)

// size is how many columns and rows a terminal has: zeros for what is none, or does not tell.
type size struct{ columns, rows int }

func sizeOf(out io.Writer) size {
	file, is := out.(*os.File)
	if !is {
		return size{}
	}
	columns, rows, err := term.GetSize(int(file.Fd()))
	if err != nil {
		return size{}
	}
	return size{columns, rows}
}

// isTerminal tells whether a picture can be drawn in place.
func isTerminal(out io.Writer) bool {
	file, ok := out.(*os.File)
	return ok && os.Getenv("TERM") != "dumb" && term.IsTerminal(int(file.Fd()))
}

// sheet is what a text is written on that has a right edge: rows of tables end there, and other lines are folded between words.
type sheet struct {
	out     io.Writer
	columns int
}

// sheetOn is out with the edge of the terminal that it is, and out itself when it is none.
func sheetOn(out io.Writer) io.Writer {
	if columns := sizeOf(out).columns; columns > 0 {
		return &sheet{out, columns}
	}
	return out
}

// Write takes whole lines.
func (s *sheet) Write(text []byte) (int, error) {
	for line := range strings.Lines(string(text)) {
		if _, err := io.WriteString(s.out, folded(line, s.columns)); err != nil {
			return 0, err
		}
	}
	return len(text), nil
}

// folded is a line in pieces that are no longer than so many columns. Those after the first stand two columns further in.
func folded(line string, columns int) string {
	const in = "  "
	rest, end := strings.CutSuffix(line, "\n")
	indent := strings.Repeat(" ", len(rest)-len(strings.TrimLeft(rest, " "))) + in
	if len(indent) >= columns {
		indent = ""
	}
	var b strings.Builder
	runes := []rune(rest)
	for len(runes) > columns {
		at := columns
		for i := columns; i > len(indent); i-- {
			if runes[i] == ' ' {
				at = i
				break
			}
		}
		b.WriteString(strings.TrimRight(string(runes[:at]), " ") + "\n")
		runes = []rune(indent + strings.TrimLeft(string(runes[at:]), " "))
	}
	b.WriteString(string(runes))
	if end {
		b.WriteByte('\n')
	}
	return b.String()
}

// cut is a line that ends at the right edge.
func cut(line string, columns int) string {
	line = strings.TrimRight(line, " \n")
	if runes := []rune(line); len(runes) > columns {
		return string(runes[:columns-1]) + "…"
	}
	return line
}

// table has its cells in columns. Rows are written by Flush.
type table interface {
	io.Writer
	Flush() error
}

// newTable is one as kubectl's are. On a sheet its rows end at the edge.
func newTable(out io.Writer) table {
	on, is := out.(*sheet)
	if !is {
		return printers.GetNewTabWriter(out)
	}
	t := &edgedTable{sheet: on}
	t.table = printers.GetNewTabWriter(&t.drawn)
	return t
}

type edgedTable struct {
	table
	drawn bytes.Buffer
	sheet *sheet
}

// Flush writes the rows.
func (t *edgedTable) Flush() error {
	if err := t.table.Flush(); err != nil {
		return err
	}
	for line := range strings.Lines(t.drawn.String()) {
		if _, err := fmt.Fprintln(t.sheet.out, cut(line, t.sheet.columns)); err != nil {
			return err
		}
	}
	t.drawn.Reset()
	return nil
}

// writeCommand writes what to type next, behind what it is for. On a sheet without room for both it gets a line of its own, which is not folded: the
// beginning of a command may be a command, too.
func writeCommand(out io.Writer, head, command string) {
	if on, is := out.(*sheet); is && utf8.RuneCountInString(head+" "+command) > on.columns {
		fmt.Fprintln(out, head)
		fmt.Fprintln(on.out, command)
		return
	}
	fmt.Fprintln(out, head, command)
}

const (
	// shortestName is how much of a name a table leaves at least.
	shortestName = 16
	// shortestMessage is how much a long name leaves of the last column.
	shortestMessage = 24
)

// writeRows writes a table whose first row is its head, with names in some of its columns.
func writeRows(out io.Writer, rows [][]string, names ...int) error {
	return newRows(out, names...).add(rows)
}

// rowsTable is a table that may get more rows later, in the columns of the first ones. On a sheet names are shortened as far as it takes to have all
// columns begin before the edge: one long name would push the others out.
type rowsTable struct {
	table
	edge  *sheet // nil where there is none
	names []int
	most  []int // columns for each of names
}

func newRows(out io.Writer, names ...int) *rowsTable {
	on, _ := out.(*sheet)
	return &rowsTable{table: newTable(out), edge: on, names: names}
}

// add writes rows. The first one of all is the head.
func (t *rowsTable) add(rows [][]string) error {
	if t.edge != nil && t.most == nil && len(rows) > 0 {
		t.most = roomFor(rows, t.names, t.edge.columns)
	}
	for _, row := range rows {
		for i, most := range t.most {
			row[t.names[i]] = middleOut(row[t.names[i]], most)
		}
		fmt.Fprintln(t, strings.Join(row, "\t"))
	}
	return t.Flush()
}

// roomFor is how many columns of a terminal are left for names, when the last column of the table has the least that it takes. Short names leave more
// to the others.
func roomFor(rows [][]string, names []int, columns int) []int {
	const between = 3
	widest, left := make([]int, len(rows[0])), columns-between*(len(rows[0])-1)
	for i, head := range rows[0] {
		widest[i] = utf8.RuneCountInString(head)
		for _, row := range rows {
			widest[i] = max(widest[i], utf8.RuneCountInString(row[i]))
		}
		if i == len(rows[0])-1 {
			widest[i] = min(widest[i], shortestMessage)
		}
		if !slices.Contains(names, i) {
			left -= widest[i]
		}
	}
	room, narrowest := make([]int, len(names)), make([]int, len(names))
	for i := range narrowest {
		narrowest[i] = i
	}
	slices.SortStableFunc(narrowest, func(a, b int) int { return widest[names[a]] - widest[names[b]] })
	for done, i := range narrowest {
		room[i] = max(shortestName, left/(len(names)-done))
		left -= min(widest[names[i]], room[i])
	}
	return room
}

// middleOut is a name with its middle left out when it is longer than so many columns: names of one kind often begin or end alike.
func middleOut(name string, most int) string {
	runes := []rune(name)
	if len(runes) <= most {
		return name
	}
	return string(runes[:most/2-1]) + "…" + string(runes[len(runes)-most/2:])
}

// inPlace is a picture on a terminal that is drawn again where it was.
type inPlace struct {
	out   io.Writer
	drawn int
}

// draw shows what draws writes, as much of it as there is room for. The last picture is shown whole.
func (p *inPlace) draw(last bool, draws func(io.Writer) error) error {
	var b bytes.Buffer
	var on io.Writer = &b
	screen := sizeOf(p.out) // a person may have changed it
	if screen.columns > 0 {
		on = &sheet{&b, screen.columns}
	}
	if err := draws(on); err != nil {
		return err
	}
	text := b.String()
	if !last {
		text = screenful(text, screen.rows)
	}
	_, err := io.WriteString(p.out, redraw(p.drawn, text))
	p.drawn = strings.Count(text, "\n")
	return err
}

// screenful is as much of a text as so many rows show, with one for the cursor: nobody can go back over lines that have left the screen. 0 rows are
// as many as it takes.
func screenful(text string, rows int) string {
	lines := strings.SplitAfter(text, "\n")
	lines = lines[:len(lines)-1]
	most := rows - 1
	if rows == 0 || most < 2 || len(lines) <= most {
		return text
	}
	return strings.Join(lines[:most-1], "") + fmt.Sprintf("and %d more lines, for which there is no room\n", len(lines)-most+1)
}

// redraw goes back over the lines drawn before, clears them and writes the text. Lines longer than the terminal is wide
// are cut by it: a wrapped one would count for two.
func redraw(drawn int, text string) string {
	const noWrap, wrap, clearBelow = "\x1b[?7l", "\x1b[?7h", "\x1b[J"
	up := ""
	if drawn > 0 {
		up = fmt.Sprintf("\x1b[%dA\r", drawn)
	}
	return up + clearBelow + noWrap + text + wrap
}
