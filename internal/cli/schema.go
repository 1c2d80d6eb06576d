package cli

import (
	"bytes"
	"encoding/json"
	"fmt"

	"github.com/spf13/cobra"

	"github.com/kiln-pipeline/kiln/internal/content/project"
)

func newSchemaCommand(a *app) *cobra.Command {
	var rules bool
	cmd := &cobra.Command{
		Use:   "schema",
		Short: "Print the JSON schema of kiln.toml for editors",
		Long: `Print the JSON schema of kiln.toml, with the settings of all processors that the project has. Editors that
know TOML schemas (Even Better TOML, taplo) check and complete the file with it.`,
		GroupID: groupAbout,
		Example: "  kiln schema > kiln.schema.json\n  kiln schema --rules > rules.schema.json",
		Args:    atMost(0),
		RunE: func(*cobra.Command, []string) error {
			infos, _, warning := a.knownProcessors()
			if !a.json {
				if err := a.tell(warning); err != nil {
					return err
				}
			}
			schema := project.Schema(infos)
			if rules {
				var err error
				if schema, err = rulesSchema(schema); err != nil {
					return err
				}
			}
			if a.json {
				var line bytes.Buffer
				if err := json.Compact(&line, schema); err != nil {
					return err
				}
				schema = line.Bytes()
			}
			_, err := fmt.Fprintf(a.out, "%s\n", bytes.TrimSpace(schema))
			return err
		},
	}
	cmd.Flags().BoolVar(&rules, "rules", false, "the schema of rules.toml")
	return cmd
}

// rulesSchema is the schema of rules.toml, a part of that of kiln.toml.
func rulesSchema(schema []byte) ([]byte, error) {
	var whole struct {
		Schema string          `json:"$schema"`
		Defs   json.RawMessage `json:"$defs"`
	}
	if err := json.Unmarshal(schema, &whole); err != nil {
		return nil, err
	}
	return json.MarshalIndent(struct {
		Schema string          `json:"$schema"`
		Title  string          `json:"title"`
		Ref    string          `json:"$ref"`
		Defs   json.RawMessage `json:"$defs"`
	}{whole.Schema, project.RulesFile, "#/$defs/rules-file", whole.Defs}, "", "  ")
}
