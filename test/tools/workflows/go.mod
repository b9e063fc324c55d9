// The linter of the GitHub workflows, built on first use into /.tools by the Makefile, and tests of .github.
module github.com/openshift-agent/cluster-api-provider-openshift-agent/test/tools/workflows

go 1.26.0

tool github.com/rhysd/actionlint/cmd/actionlint

require (
	github.com/onsi/gomega v1.39.0
	github.com/rhysd/actionlint v1.7.12
	go.yaml.in/yaml/v4 v4.0.0-rc.3
)

require (
	github.com/bmatcuk/doublestar/v4 v4.10.0 // indirect
	github.com/clipperhouse/uax29/v2 v2.7.0 // indirect
	github.com/fatih/color v1.19.0 // indirect
	github.com/google/go-cmp v0.7.0 // indirect
	github.com/mattn/go-colorable v0.1.14 // indirect
	github.com/mattn/go-isatty v0.0.20 // indirect
	github.com/mattn/go-runewidth v0.0.21 // indirect
	github.com/mattn/go-shellwords v1.0.12 // indirect
	github.com/robfig/cron/v3 v3.0.1 // indirect
	go.yaml.in/yaml/v3 v3.0.4 // indirect
	golang.org/x/net v0.52.0 // indirect
	golang.org/x/sync v0.20.0 // indirect
	golang.org/x/sys v0.42.0 // indirect
	golang.org/x/text v0.35.0 // indirect
)
