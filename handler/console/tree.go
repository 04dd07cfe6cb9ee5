package console

import (
	"bytes"
	"encoding/json"
	"fmt"
)

const (
	// maxTreeNodes bounds the values in a document's tree, and maxTreeDepth their nesting.
	maxTreeNodes, maxTreeDepth = 400, 16
	// maxLeaf is the displayed length of a text in a tree, in bytes.
	maxLeaf = 1000
	// openNodes is the most members of an object or a list that is open at first.
	openNodes = 20
)

// treeNode is a value of a JSON document: numbers and texts are unchanged, and duplicate members occur twice.
type treeNode struct {
	// Name is that of a member, or the number of an element; "" for the document itself.
	Name Text
	// Value is a text, a number, a truth value or null, and Kind object, list, or "" for a value.
	Value Text
	Kind  string
	// Children are its members or elements, and Left the number of omitted ones.
	Children []*treeNode
	Left     int
	// Open means that its members are displayed at first.
	Open bool
}

// Count returns the displayed number of members or elements.
func (n *treeNode) Count() string {
	count, noun := len(n.Children)+n.Left, map[string]string{"object": "member", "list": "element"}[n.Kind]
	if count == 1 {
		return "1 " + noun
	}
	return fmt.Sprintf("%d %ss", count, noun)
}

// treeOf returns the tree of a document, nil for a single value or for no JSON.
func treeOf(document json.RawMessage) *treeNode {
	document = bytes.TrimSpace(document)
	if len(document) == 0 || document[0] != '{' && document[0] != '[' || !json.Valid(document) {
		return nil
	}
	b := treeBuilder{left: maxTreeNodes}
	return b.node("", document, 0)
}

// treeBuilder makes nodes while its budget lasts.
type treeBuilder struct{ left int }

func (b *treeBuilder) node(name Text, raw json.RawMessage, depth int) *treeNode {
	b.left--
	n := &treeNode{Name: name}
	switch {
	case raw[0] != '{' && raw[0] != '[':
		n.Value = beginningOf(raw, maxLeaf)
	case depth == maxTreeDepth:
		n.Value = beginningOf(raw, maxLine)
	case raw[0] == '{':
		n.Kind = "object"
		b.fill(n, raw, depth)
	default:
		n.Kind = "list"
		b.fill(n, raw, depth)
	}
	n.Open = depth < 2 && len(n.Children) <= openNodes
	return n
}

// fill adds the members of an object, or the elements of a list.
func (b *treeBuilder) fill(n *treeNode, raw json.RawMessage, depth int) {
	d := json.NewDecoder(bytes.NewReader(raw))
	_, err := d.Token() // the document is valid, so no call below fails
	for err == nil && d.More() {
		name := Text(fmt.Sprint(len(n.Children) + n.Left))
		if n.Kind == "object" {
			var token json.Token
			if token, err = d.Token(); err != nil {
				return
			}
			text, _ := token.(string)
			name = line(Text(text))
		}
		var value json.RawMessage
		if err = d.Decode(&value); err != nil {
			return
		}
		if b.left <= 0 {
			n.Left++
			continue
		}
		n.Children = append(n.Children, b.node(name, value, depth+1))
	}
}

// beginningOf returns the beginning of a value.
func beginningOf(raw json.RawMessage, most int) Text {
	if begin := cut(string(raw), most); len(begin) < len(raw) {
		return Text(begin) + "…"
	}
	return Text(raw)
}
