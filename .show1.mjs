import { readFileSync } from "node:fs";
import { prepare } from "./transformer_lib/widgets/write/source.js";
const {exercises}=JSON.parse(readFileSync(".trial.json"));
const e=exercises.find(x=>x.id.includes(process.argv[2]));
const show=(t)=>t.split("\n").map((l,i)=>`${i+1} ${l}`).join("\n");
if (process.argv[3]==="m") console.log(show(prepare(Object.fromEntries(e.modules)[process.argv[4]]).code)); else { console.log(e.modules.map(([n,s])=>n+" "+s.length)); console.log(show(e.context)); console.log(e.solution); }
