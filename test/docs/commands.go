package docs

import (
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
)

// Commands are the commands of a block, each with its continuation lines and here-documents.
func Commands(block string) []string {
	var lines []string
	heredoc := ""
	continued := false
	for line := range strings.Lines(strings.TrimSuffix(block, "\n")) {
		line = strings.TrimSuffix(line, "\n")
		if heredoc != "" || continued {
			lines[len(lines)-1] += "\n" + line
		} else if strings.TrimSpace(line) != "" {
			lines = append(lines, line)
		}
		if heredoc == "" {
			if match := hereDocument.FindStringSubmatch(line); match != nil {
				heredoc = match[1]
			}
		} else if line == heredoc {
			heredoc = ""
		}
		continued = strings.HasSuffix(line, `\`)
	}
	return lines
}

var hereDocument = regexp.MustCompile(`<<'?([A-Z]+)'?`)

// Built reports whether a command is one of make or go, which is checked rather than run.
func Built(command string) bool {
	return strings.HasPrefix(command, "make ") || strings.HasPrefix(command, "go ") || strings.HasPrefix(command, "CORE=")
}

var (
	makeCommand = regexp.MustCompile(`make ([a-z][a-z0-9-]*)`)
	variable    = regexp.MustCompile(`\b([A-Z]+)=`)
	goCommand   = regexp.MustCompile(`^go (?:-C (\S+) )?(?:test|run) (\./\S+)`)
	goTest      = regexp.MustCompile(`-run (\w+)`)
	goFlag      = regexp.MustCompile(`[ '=]-([a-z]+)=`)
)

// Check returns an error if a command of make or go names something that does not exist in the repository below root.
func Check(root, command string) error {
	command, _, _ = strings.Cut(command, " #")
	if match := makeCommand.FindStringSubmatch(command); match != nil {
		return checkMake(root, match[1], command)
	}
	match := goCommand.FindStringSubmatch(command)
	if match == nil {
		return nil // go get and the like name nothing of the repository
	}
	module, folder := filepath.Join(root, match[1]), match[2]
	sources, err := goFiles(filepath.Join(module, folder))
	if err != nil {
		return err
	}
	if err := checkModule(module, folder); err != nil {
		return err
	}
	if test := goTest.FindStringSubmatch(command); test != nil && !strings.Contains(sources, "func "+test[1]+"(") {
		return fmt.Errorf("%s has no %s", folder, test[1])
	}
	return checkFlags(sources, folder, command)
}

// checkModule returns an error if a folder below a module belongs to another module, from which the go command keeps
// away.
func checkModule(module, folder string) error {
	for dir := filepath.Clean(folder); dir != "."; dir = filepath.Dir(dir) {
		if _, err := os.Stat(filepath.Join(module, dir, "go.mod")); err == nil {
			return fmt.Errorf("%s is in the module %s: use go -C %[2]s", folder, dir)
		}
	}
	return nil
}

// flagFolders are the folders below test with the flags of make targets. The first one has the program.
var flagFolders = map[string][]string{
	"bench": {"measure/bench", "measure/results"}, "chaos": {"chaos"}, "scale": {"measure/scale", "measure/results"},
}

func checkMake(root, target, command string) error {
	makefile, err := os.ReadFile(filepath.Join(root, "Makefile"))
	if err != nil {
		return err
	}
	if !regexp.MustCompile(`(?m)^` + target + `:`).Match(makefile) {
		return fmt.Errorf("the Makefile has no target %s", target)
	}
	for _, name := range variable.FindAllStringSubmatch(command, -1) {
		if !regexp.MustCompile(`\b` + name[1] + `\b`).Match(makefile) {
			return fmt.Errorf("the Makefile knows no %s", name[1])
		}
	}
	var all strings.Builder
	for _, folder := range flagFolders[target] {
		sources, err := goFiles(filepath.Join(root, "test", folder))
		if err != nil {
			return err
		}
		all.WriteString(sources)
	}
	if all.Len() == 0 {
		return nil
	}
	return checkFlags(all.String(), "test/"+flagFolders[target][0], command)
}

// checkFlags searches the sources of a program for the flags of a command.
func checkFlags(sources, program, command string) error {
	for _, flag := range goFlag.FindAllStringSubmatch(command, -1) {
		if !strings.Contains(sources, `"`+flag[1]+`"`) {
			return fmt.Errorf("%s has no flag -%s", program, flag[1])
		}
	}
	return nil
}

var (
	// runBy matches a remark. With a name of the block, the test reads the block from its document and runs it as it is.
	runBy = regexp.MustCompile(`^run (?:as ([a-z-]+) )?by (\w+) in (\S+)$`)
	needs = regexp.MustCompile(`^needs (.+)$`)
	words = regexp.MustCompile(`[a-z-]+`)
)

// Lacking are the requirements of commands that the hub, on which the commands of documents run, does not have. A
// remark may name them after needs. The values are the reasons.
var Lacking = map[string]string{
	"Pods":      "no kubelet runs there: containers and their logs do not exist",
	"GitHub":    "a published release exists on GitHub only",
	"Internet":  "manifests of other projects are downloaded",
	"OpenShift": "only OpenShift installs operators with Subscriptions",
}

// Excused reports whether a remark states a valid reason why a block is not run here. An invalid reason is an error.
func Excused(root, remark, block string) (bool, error) {
	if match := runBy.FindStringSubmatch(remark); match != nil {
		return true, checkRunBy(root, match[1], match[2], match[3], block)
	}
	match := needs.FindStringSubmatch(remark)
	if match != nil && Lacking[match[1]] == "" {
		return false, fmt.Errorf("%q keeps no command from being run: only what is missing for good does, which is %s",
			match[1], strings.Join(slices.Sorted(maps.Keys(Lacking)), ", "))
	}
	return match != nil, nil
}

// tools are the programs whose subcommands and flags tests have as arguments.
var tools = []string{"clusterctl", "helm"}

// checkRunBy searches the tests that a remark names for the name of a block. Without a name it searches them for the
// subcommands and flags of tools.
func checkRunBy(root, name, test, folder, block string) error {
	sources, err := goFiles(filepath.Join(root, folder))
	if err != nil {
		return err
	}
	if !strings.Contains(sources, "func "+test+"(") {
		return fmt.Errorf("%s has no %s", folder, test)
	}
	if name == "" {
		return checkTools(sources, folder, block)
	}
	if !strings.Contains(sources, `"`+name+`"`) {
		return fmt.Errorf("%s runs no block %q", folder, name)
	}
	return nil
}

// checkTools searches the sources of tests for the subcommands and flags of tools.
func checkTools(sources, folder, block string) error {
	checked := 0
	for _, command := range Commands(block) {
		fields := strings.Fields(command)
		if !slices.Contains(tools, fields[0]) {
			continue
		}
		for i, field := range fields[1:] {
			name, _, _ := strings.Cut(field, "=")
			if i > 0 && !strings.HasPrefix(name, "--") || words.FindString(name) != name {
				continue
			}
			checked++
			if !strings.Contains(sources, `"`+name+`"`) {
				return fmt.Errorf("%s runs no %s with %s", folder, fields[0], name)
			}
		}
	}
	if checked == 0 {
		return fmt.Errorf("it has no command of %[2]s to search for in %[1]s", folder, strings.Join(tools, " or "))
	}
	return nil
}

// Name returns the name by which a test runs the block; empty if it has none.
func (b Block) Name() string {
	if match := runBy.FindStringSubmatch(b.Remark); match != nil {
		return match[1]
	}
	return ""
}

// Named returns the block of a document that a test runs by this name.
func (d *Document) Named(name string) (Block, error) {
	for _, block := range d.Blocks("console") {
		if block.Name() == name {
			return block, nil
		}
	}
	return Block{}, fmt.Errorf("%s has no block that is run as %s", d.Path, name)
}

// goFiles are the Go files of a folder, one after the other.
func goFiles(folder string) (string, error) {
	files, err := filepath.Glob(filepath.Join(folder, "*.go"))
	if err != nil {
		return "", err
	}
	if len(files) == 0 {
		return "", fmt.Errorf("there is no package %s", folder)
	}
	slices.Sort(files)
	var all strings.Builder
	for _, file := range files {
		content, err := os.ReadFile(file)
		if err != nil {
			return "", err
		}
		all.Write(content)
	}
	return all.String(), nil
}
