// Reads {"tables": {table: {type: [column]}}, "queries": [text]} from standard input, and writes the results of Kusto's own parser for
// each query: [{"columns": [name], "findings": [{"line": 1, "code": ..., "message": ...}]}]. It omits suggestions of style.
require("@kusto/language-service-next/bridge.min.js");
require("@kusto/language-service-next/Kusto.Language.Bridge.min.js");

const { GlobalState, KustoCode, Symbols } = Kusto.Language;
const input = JSON.parse(require("fs").readFileSync(0, "utf8"));
const tables = Object.entries(input.tables).map(([table, types]) => {
  const columns = Object.entries(types).flatMap(([type, names]) => names.map((name) => `${name}: ${type}`));
  return Symbols.TableSymbol.From(`(${columns.join(", ")})`).WithName(table);
});
const globals = GlobalState.Default.WithDatabase(new Symbols.DatabaseSymbol.ctor("workspace", tables));
const said = input.queries.map((text) => {
  const code = KustoCode.ParseAndAnalyze(text, globals);
  const columns = code.ResultType && code.ResultType.Columns ? Bridge.toArray(code.ResultType.Columns) : [];
  return {
    columns: columns.map((c) => c.Name),
    findings: Bridge.toArray(code.GetDiagnostics())
      .filter((d) => d.Severity === "Error" || d.Severity === "Warning")
      .map((d) => ({ line: text.slice(0, d.Start).split("\n").length, code: d.Code, message: d.Message })),
  };
});
process.stdout.write(JSON.stringify(said));
