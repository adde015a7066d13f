// SPDX-License-Identifier: Apache-2.0

// Program picture draws docs/hand-over.svg: which backend has the pods of a FleetWorkload before, during and after a hand-over. `make verify`
// fails when the file is another.
package main

import (
	"bytes"
	"flag"
	"fmt"
	"os"
	"slices"
)

func main() {
	out := flag.String("out", "docs/hand-over.svg", "file to write")
	flag.Parse()
	if err := os.WriteFile(*out, draw(), 0o644); err != nil {
		fmt.Fprintln(os.Stderr, "picture: write it:", err)
		os.Exit(1)
	}
}

const (
	karmada = "karmada"
	ocm     = "ocm"
)

// moment is a third of the picture: what the spec says, and which backend has each cluster.
type moment struct {
	title, backend string
	owners         []string
}

var moments = []moment{
	{"Karmada has the workload", karmada, []string{karmada, karmada, karmada}},
	{"each cluster changes hands", ocm, []string{ocm, karmada, karmada}},
	{"OCM has it, with the same pods", ocm, []string{ocm, ocm, ocm}},
}

// Sizes and places, in pixels. A moment is as wide as three clusters and the spaces between them.
const (
	margin, between = 20, 40
	cluster, space  = 76, 12
	across          = 3*cluster + 2*space
	backend         = 116

	titleY, specY, backendY, clusterY, noteY = 32, 48, 124, 204, 300
	height                                   = 316
)

const head = `<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 %[1]d %[2]d" width="%[1]d" height="%[2]d" role="img" aria-labelledby="title about">
<!-- Drawn by hack/picture (make pictures). Do not edit. -->
<title id="title">A hand-over</title>
<desc id="about">A FleetWorkload on three clusters. Karmada has it. Then its backend is changed to OCM, and one cluster after the other changes
hands, until OCM has it. The pods are the same ones all the time.</desc>
<style>
text { font: 13px system-ui, sans-serif; fill: #1f2328; text-anchor: middle }
.title { font-size: 14px; font-weight: 600 }
.small { font-size: 11px; fill: #59636e }
.code { font: 12px ui-monospace, monospace }
.plain { fill: #f6f8fa; stroke: #818b98 }
.karmada { fill: #0969da; stroke: #0969da }
.ocm { fill: #bc4c00; stroke: #bc4c00 }
.white { fill: #fff; font-weight: 600 }
.idle { opacity: .3 }
line { stroke-width: 2 }
</style>
<rect width="100%%" height="100%%" rx="8" fill="#fff"/>
`

// picture is an SVG in the making.
type picture struct{ bytes.Buffer }

func draw() []byte {
	var p picture
	width := 2*margin + len(moments)*across + (len(moments)-1)*between
	fmt.Fprintf(&p, head, width, height)
	for i, m := range moments {
		p.moment(m, margin+i*(across+between))
	}
	p.text("small", width/2, noteY, "Each circle is a pod, in the colour of the backend that has it. None is restarted, made anew or moved.")
	p.WriteString("</svg>\n")
	return p.Bytes()
}

func (p *picture) moment(m moment, left int) {
	middle := left + across/2
	at := map[string]int{karmada: left + backend/2, ocm: left + across - backend/2}
	p.text("title", middle, titleY, m.title)
	p.line("plain", middle, specY+42, at[m.backend], backendY)
	p.box("plain", middle-84, specY, 168, 42)
	p.text("", middle, specY+18, "FleetWorkload web")
	p.text("code", middle, specY+34, "backend: "+m.backend)
	for c, owner := range m.owners {
		p.line(owner, at[owner], backendY+36, left+c*(cluster+space)+cluster/2, clusterY)
	}
	for _, b := range []struct{ name, title string }{{karmada, "Karmada"}, {ocm, "OCM"}} {
		class := b.name
		if b.name != m.backend && !slices.Contains(m.owners, b.name) {
			class += " idle"
		}
		p.box(class, at[b.name]-backend/2, backendY, backend, 36)
		p.text("white", at[b.name], backendY+23, b.title)
	}
	for c, owner := range m.owners {
		x := left + c*(cluster+space)
		p.box("plain", x, clusterY, cluster, 66)
		p.pod(owner, x+24, clusterY+24)
		p.pod(owner, x+52, clusterY+24)
		p.text("small", x+cluster/2, clusterY+54, fmt.Sprint("member", c+1))
	}
}

func (p *picture) box(class string, x, y, width, height int) {
	fmt.Fprintf(p, "<rect class=%q x=\"%d\" y=\"%d\" width=\"%d\" height=\"%d\" rx=\"6\"/>\n", class, x, y, width, height)
}

func (p *picture) text(class string, x, y int, says string) {
	fmt.Fprintf(p, "<text class=%q x=\"%d\" y=\"%d\">%s</text>\n", class, x, y, says)
}

func (p *picture) line(class string, x1, y1, x2, y2 int) {
	fmt.Fprintf(p, "<line class=%q x1=\"%d\" y1=\"%d\" x2=\"%d\" y2=\"%d\"/>\n", class, x1, y1, x2, y2)
}

func (p *picture) pod(class string, x, y int) {
	fmt.Fprintf(p, "<circle class=%q cx=\"%d\" cy=\"%d\" r=\"9\"/>\n", class, x, y)
}
