package pages

import (
	"fmt"
	"iter"
	"strings"
)

// Command is one command of a block of a shell, or of a line of text.
type Command struct {
	Line int
	// Words are the name of the program and its arguments, without quotes. What a shell would fill in, such as $(…), stays as it is.
	Words []string
}

// Flags returns the flags among the arguments, without what is assigned to them, up to "--".
func (c Command) Flags() []string {
	var out []string
	for _, word := range c.Words[1:] {
		if word == "--" {
			break
		}
		if name, _, _ := strings.Cut(word, "="); strings.HasPrefix(name, "-") && len(name) > 1 && !strings.Contains(name, " ") {
			out = append(out, name)
		}
	}
	return out
}

// Commands returns the commands of a block of a shell. In a block that shows a session, they are the lines that begin with "$ ".
func (b Block) Commands() []Command {
	text := b.Text
	if b.IsSession() {
		lines := strings.Split(text, "\n")
		for i, line := range lines {
			lines[i], _ = strings.CutPrefix(line, "$ ")
			if lines[i] == line {
				lines[i] = ""
			}
		}
		text = strings.Join(lines, "\n")
	}
	return commands(b.Line+1, text)
}

// IsShell reports whether a block is one of commands.
func (b Block) IsShell() bool { return b.Language == "sh" || b.IsSession() }

// IsSession reports whether a block shows what commands write, each after a prompt.
func (b Block) IsSession() bool { return b.Language == "" && strings.HasPrefix(b.Text, "$ ") }

// Commands returns the commands of a page, those of its blocks and those that its text shows as code, with where they stand.
func (p Page) Commands() iter.Seq2[string, Command] {
	return func(yield func(string, Command) bool) {
		for _, block := range p.Blocks {
			if !block.IsShell() {
				continue
			}
			for _, c := range block.Commands() {
				if !yield(fmt.Sprintf("%s:%d", p.File, c.Line), c) {
					return
				}
			}
		}
		for _, span := range p.Spans {
			if !begins(span.Text) {
				continue
			}
			for _, c := range commands(span.Line, span.Text) {
				if !yield(fmt.Sprintf("%s:%d", p.File, c.Line), c) {
					return
				}
			}
		}
	}
}

// begins reports whether a text that is shown as code is a command.
func begins(text string) bool {
	name, rest, _ := strings.Cut(text, " ")
	switch name {
	case "kubectl", "make", "helm", "kubectl-kruise", "kruise-manager", "kruise-daemon":
		return rest != ""
	}
	return strings.HasPrefix(name, "bin/k") || strings.HasPrefix(name, "hack/") && rest != ""
}

// lexer splits a text of a shell into commands: at ends of lines, at operators, and into words at blanks. Nothing is expanded.
type lexer struct {
	line int
	word strings.Builder
	some bool // the word has begun, if only with quotes
	now  Command
	out  []Command
}

func commands(line int, text string) []Command {
	l := &lexer{line: line}
	for i := 0; i < len(text); i++ {
		c := text[i]
		switch {
		case c == '\\' && i+1 < len(text) && text[i+1] == '\n':
			i++
			l.line++
		case c == '\'' || c == '"':
			i = l.quoted(text, i)
		case c == '$' && strings.HasPrefix(text[i:], "$("):
			i = l.substituted(text, i)
		case c == '#' && !l.some:
			for i+1 < len(text) && text[i+1] != '\n' {
				i++
			}
		case c == '\n' || c == ';' || c == '|' || c == '&':
			l.endCommand()
			if c == '\n' {
				l.line++
			}
		case c == ' ' || c == '\t':
			l.endWord()
		default:
			l.add(text[i : i+1])
		}
	}
	l.endCommand()
	return l.out
}

func (l *lexer) add(text string) {
	l.word.WriteString(text)
	l.some = true
	l.line += strings.Count(text, "\n")
}

// quoted takes what stands between quotes, and returns where the second one is.
func (l *lexer) quoted(text string, at int) int {
	end := strings.IndexByte(text[at+1:], text[at])
	if end < 0 {
		end = len(text) - at - 1
	}
	l.add(text[at+1 : at+1+end])
	return at + 1 + end
}

// substituted takes $(…) with what it stands for, the commands of which count too, and returns where it ends.
func (l *lexer) substituted(text string, at int) int {
	depth, end := 0, at+1
	for ; end < len(text); end++ {
		if text[end] == '(' {
			depth++
		} else if text[end] == ')' {
			depth--
			if depth == 0 {
				break
			}
		}
	}
	end = min(end, len(text)-1)
	l.out = append(l.out, commands(l.line, text[at+2:end])...)
	l.add(text[at : end+1])
	return end
}

func (l *lexer) endWord() {
	if l.some {
		l.now.Words = append(l.now.Words, l.word.String())
	}
	l.word.Reset()
	l.some = false
}

// endCommand ends a command. Assignments before the name of the program are left out.
func (l *lexer) endCommand() {
	l.endWord()
	for len(l.now.Words) > 0 && isAssignment(l.now.Words[0]) {
		l.now.Words = l.now.Words[1:]
	}
	if len(l.now.Words) > 0 {
		l.now.Line = l.line
		l.out = append(l.out, l.now)
	}
	l.now = Command{}
}

func isAssignment(word string) bool {
	name, _, is := strings.Cut(word, "=")
	return is && name != "" && strings.Trim(name, "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz_0123456789") == ""
}
