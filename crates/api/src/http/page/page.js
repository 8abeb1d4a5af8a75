"use strict";
// Shows /openapi.json. Everything becomes text nodes, so nothing in the document can become markup. The key stays in the
// input field of this page and is stored nowhere.
(() => {
  const byId = (id) => document.getElementById(id);
  const make = (tag, text, kind) => {
    const node = document.createElement(tag);
    if (text !== undefined) node.textContent = text;
    if (kind) node.className = kind;
    return node;
  };

  const resolve = (whole, schema) => {
    const name = schema && schema.$ref;
    if (!name) return schema || {};
    const steps = name.replace(/^#\//, "").split("/");
    return steps.reduce((at, step) => (at ? at[step] : undefined), whole) || {};
  };

  const typeOf = (schema) => {
    if (!schema || schema === true) return "any";
    if (schema.$ref) return schema.$ref.split("/").pop();
    if (schema.const !== undefined) return JSON.stringify(schema.const);
    if (schema.enum) return schema.enum.map((it) => JSON.stringify(it)).join(" | ");
    const either = schema.anyOf || schema.oneOf;
    if (either) return either.map(typeOf).join(" | ");
    if (schema.type === "array") return `list of ${typeOf(schema.items)}`;
    if (Array.isArray(schema.type)) return schema.type.join(" | ");
    return schema.type || "any";
  };

  const table = (rows) => {
    const made = make("table");
    for (const [name, type, required, text] of rows) {
      const row = make("tr");
      const cell = make("td");
      cell.append(make("code", name));
      const kind = make("td");
      kind.append(make("code", type));
      row.append(cell, kind, make("td", required ? "required" : ""), make("td", text || ""));
      made.append(row);
    }
    return made;
  };

  const fields = (whole, schema) => {
    const found = resolve(whole, schema);
    const required = found.required || [];
    return Object.entries(found.properties || {}).map(([name, it]) => [
      name, typeOf(it), required.includes(name), it.description,
    ]);
  };

  const section = (box, title, node) => {
    box.append(make("h4", title), node);
  };

  const answer = (whole, box, response) => {
    for (const [media, it] of Object.entries(response.content || {})) {
      const rows = it.schema ? fields(whole, it.schema) : [];
      const shown = rows.length ? table(rows) : make("p", it.schema ? typeOf(it.schema) : "");
      section(box, `Answer: ${media}`, shown);
      if (it.schema) {
        const more = make("details");
        more.append(make("summary", "Schema"), make("pre", JSON.stringify(resolve(whole, it.schema), null, 2)));
        box.append(more);
      }
    }
  };

  const operation = (whole, path, method, it) => {
    const made = make("details");
    made.id = it.operationId;
    const head = make("summary");
    head.append(make("span", method.toUpperCase(), "method"), make("code", path), make("span", it.summary));
    made.append(head);
    made.dataset.words = `${it.operationId} ${method} ${path} ${it.summary}`.toLowerCase();
    const box = make("div", undefined, "body");
    if (it["x-avfs-scope"]) {
      box.append(make("p", `Class ${it["x-avfs-class"]}, scope ${it["x-avfs-scope"]}`, "right"));
    }
    const given = (it.parameters || []).map((one) => resolve(whole, one));
    if (given.length) {
      const rows = given.map((one) => [`${one.name} (${one.in})`, typeOf(one.schema), one.required, one.description]);
      section(box, "Parameters", table(rows));
    }
    for (const [media, body] of Object.entries((it.requestBody || {}).content || {})) {
      section(box, `Body: ${media}`, table(body.schema ? fields(whole, body.schema) : []));
    }
    answer(whole, box, resolve(whole, (it.responses || {})["200"]));
    made.append(box);
    return made;
  };

  const show = (whole) => {
    const groups = new Map();
    for (const [path, methods] of Object.entries(whole.paths)) {
      for (const [method, it] of Object.entries(methods)) {
        const tag = (it.tags || ["other"])[0];
        if (!groups.has(tag)) groups.set(tag, []);
        groups.get(tag).push(operation(whole, path, method, it));
      }
    }
    const main = byId("operations");
    main.replaceChildren();
    for (const [tag, made] of groups) main.append(make("h2", tag), ...made);
    byId("state").textContent = `Version ${whole.info.version}, ${main.querySelectorAll("main > details").length} operations`;
    const asked = byId(location.hash.slice(1));
    if (asked) asked.open = true;
  };

  const load = async () => {
    const key = byId("key").value.trim();
    const headers = key ? { authorization: `Bearer ${key}` } : {};
    const answered = await fetch("/openapi.json", { headers, credentials: "omit", cache: "no-store" });
    if (answered.status === 401) {
      byId("state").textContent = "Enter an API key to load the document.";
      return;
    }
    if (!answered.ok) throw new Error(`status ${answered.status}`);
    show(await answered.json());
  };

  const begin = () => load().catch((error) => {
    byId("state").textContent = `The document could not be loaded: ${error.message}`;
  });

  byId("ask").addEventListener("submit", (event) => {
    event.preventDefault();
    begin();
  });
  byId("filter").addEventListener("input", () => {
    const wanted = byId("filter").value.toLowerCase();
    for (const it of document.querySelectorAll("main > details")) it.hidden = !it.dataset.words.includes(wanted);
  });
  begin();
})();
